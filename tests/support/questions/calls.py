"""Calls of questions' functions, for the tests of recorded calls."""

# A module, the service that its code calls, and what is noted: tests/unit/platform/test_recorded_calls.py
NOTED = [
    (
        "processors.questions.fan_out",
        "sns",
        "publish(TargetArn='arn:aws:sns:us-east-1:1:endpoint/GCM/a/b', Message='m')",
        {"sns:Publish app/*", "sns:Publish endpoint/*"},
    ),
]
# Function, call, the fault that is found (tests/infra/test_calls.py)
FAULTS = [("NotifyFunction", "sqs:ReceiveMessage FAILURE_QUEUE_URL|ANNOUNCEMENT_QUEUE_URL", "")]
