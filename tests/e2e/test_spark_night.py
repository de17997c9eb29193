"""A night that is handed to the Glue job: the deployed function starts it, waits for its end, and goes on."""

import json
import time

import pytest

from local.paths import ROOT
from local.stack import Stack

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")

HANDED_OVER = ("IsHandedOver", "Spark", "IsSparkOver", "WaitForSpark")


def test_a_night_that_is_handed_over_waits_for_the_job_and_goes_on(stack: Stack) -> None:
    """The emulator's Glue ends such a job at once, and does nothing; the night's functions do it all."""
    states, s3, bucket = stack.client("stepfunctions"), stack.client("s3"), stack.outputs["LakeBucketName"]
    text = (ROOT / "infra" / "nightly.asl.json").read_text().replace("${CurateConcurrency}", "1")
    function = stack.client("lambda").get_function(FunctionName=stack.outputs["CurateFunctionName"])
    arn = function["Configuration"]["FunctionArn"]
    known = json.loads(text.replace("${Curate}", arn))["States"]
    some = {name: known[name] for name in HANDED_OVER} | {"Curate": {"Type": "Pass", "End": True}}
    some["WaitForSpark"]["Seconds"] = 1
    definition = json.dumps({"StartAt": "IsHandedOver", "States": some})
    role = states.describe_state_machine(stateMachineArn=stack.outputs["NightlyArn"])["roleArn"]
    name = f"spark-{time.time_ns()}"
    machine = states.create_state_machine(name=name, definition=definition, roleArn=role)["stateMachineArn"]
    try:
        execution = states.start_execution(
            stateMachineArn=machine, name=name, input=json.dumps({"plan": {"is_handed_over": True}})
        )["executionArn"]
        deadline = time.monotonic() + 120
        while (found := states.describe_execution(executionArn=execution))["status"] == "RUNNING":
            assert time.monotonic() < deadline
            time.sleep(0.3)
    finally:
        states.delete_state_machine(stateMachineArn=machine)
    assert found["status"] == "SUCCEEDED", found
    told = json.loads(found["output"])["spark"]
    assert (told["state"], told["is_over"], told["reason"]) == ("SUCCEEDED", True, "")
    note = json.loads(s3.get_object(Bucket=bucket, Key=f"runs/{name}/spark.json")["Body"].read())
    assert note["job_run"] == told["job_run"]
