"""Deploys template.yaml to the emulator with the real SAM CLI, if anything in it has changed.

The built template is changed, because the emulator differs from AWS in five ways:

- It expands SAM's resources with the defaults of the parameters, whatever values are given.
- It refuses the resources of CodeDeploy.
- Its conditions know no pseudo parameter, no mapping and no Fn::Join.
- It asks for the permission that has the name of the call, even where AWS asks for another one.
- Its Ref of a secret is the secret's name. On AWS it is the ARN.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from infra.intrinsics import Refusal, Scope, holds, parameter_values, scalar_text
from infra.template_text import parse
from local.cloud import tokens
from local.cloud.processes import sam, uv
from local.paths import LOCAL, LOGS, ROOT, WAREHOUSE
from local.progress import working
from local.stack import EMULATOR_KEY, EMULATOR_SECRET, REGION, Stack, fresh_client, tables_in

STACK_NAME = "streakline"
ARTIFACTS = "streakline-artifacts"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
MACHINE = os.uname().machine
PLATFORM = "aarch64" if MACHINE in ("arm64", "aarch64") else "x86_64"
DEPLOYED = LOCAL / "deployed.txt"  # the digest of the deployment that the emulator runs
DEPLOYED_PARTS = (
    *("template.yaml", "samconfig.toml", "Makefile", "uv.lock", "infra"),
    *("rules", "adapters", "ingest", "processors", "analytics", "sql", "page"),
    # What changes the built template, what shares builds between functions, and what publishes the issuer.
    *("local/cloud/deployment.py", "local/cloud/sam_cli.py", "local/cloud/tokens.py"),
)
BUILD = LOCAL / "aws-sam" / "build"
BUILT = BUILD / "template.yaml"
LOOK_EVERY_SECONDS = 0.3
# Progress is counted in the log. By command of SAM: what is counted, and the text that stands for one of it.
SAM_STEPS = {
    "build": {"steps": "Running "},
    "deploy": {"uploads": "(100.00%)", "resources": "CREATE_COMPLETE"},
}
ACCOUNT = "000000000000"
FUNCTION_TYPE = "AWS::Serverless::Function"
SECRET_TYPE = "AWS::SecretsManager::Secret"
BATCH_STATEMENT = "dynamodb:BatchExecuteStatement"
# The permission that AWS asks for -> the permission that the emulator asks for.
EMULATOR_ACTIONS = {
    "sns:Publish": "sns:PublishBatch",
    "sqs:SendMessage": "sqs:SendMessageBatch",
    "dynamodb:PartiQLDelete": BATCH_STATEMENT,
    "dynamodb:PartiQLInsert": BATCH_STATEMENT,
    "dynamodb:PartiQLUpdate": BATCH_STATEMENT,
}
SECRET_ARN = "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:${%s}-*"


def deploy(endpoint: str, redis_url: str, identity_url: str, given: Mapping[str, str]) -> None:
    """Build and deploy, unless the emulator already runs exactly this.

    identity_url: "" without leads. given: parameters that somebody has chosen. Raises RuntimeError, with the
    end of SAM's log, if SAM fails.
    """
    emulator = Stack("", endpoint, REGION, {}, {}, "")  # nothing is deployed to it yet
    identity_secret = secret_of(emulator, identity_url) if identity_url else ""
    parameters = [
        f"{name}={value}"
        for name, value in {**given, **_parameters(endpoint, redis_url, identity_secret)}.items()
        if value  # SAM takes no empty one; those of ours are empty by default
    ]
    digest = _digest([*parameters, endpoint])
    if DEPLOYED.exists() and DEPLOYED.read_text() == digest:
        print("deployed already, and nothing has changed since", flush=True)
        return
    _sam(["build", "--build-dir", str(BUILD)], endpoint)
    BUILT.write_text(
        emulator_template(BUILT.read_text(), dict(parameter.split("=", 1) for parameter in parameters))
    )
    for nested in BUILD.glob("*/template.yaml"):
        nested.write_text(as_json(nested.read_text()))
    emulator.client("s3").create_bucket(Bucket=ARTIFACTS)
    tokens.publish(emulator)
    # A deployment that fails halfway leaves neither the old one nor the new one.
    DEPLOYED.unlink(missing_ok=True)
    _sam(
        [
            *("deploy", "--template-file", str(BUILT)),
            *("--stack-name", STACK_NAME, "--s3-bucket", ARTIFACTS, "--region", REGION),
            *("--capabilities", "CAPABILITY_IAM", "--no-confirm-changeset", "--no-fail-on-empty-changeset"),
            *("--no-resolve-s3", "--parameter-overrides", *parameters),
        ],
        endpoint,
    )
    DEPLOYED.write_text(digest)


def describe(endpoint: str, redis_url: str, given: Mapping[str, str]) -> Stack:
    """Return the deployed stack: its URL, outputs and tables. given: as `deploy` has it."""
    client = fresh_client(endpoint, REGION, "cloudformation")
    description = client.describe_stacks(StackName=STACK_NAME)["Stacks"][0]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in description["Outputs"]}
    api_url = f"{endpoint}/_aws/execute-api/{outputs['ApiId']}/$default"
    tables, parameters = tables_in(outputs), dict(given)
    return Stack(api_url, endpoint, REGION, outputs, tables, redis_url, STACK_NAME, parameters)


def _sam(arguments: list[str], endpoint: str) -> None:
    env = {
        **os.environ,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": EMULATOR_KEY,
        "AWS_SECRET_ACCESS_KEY": EMULATOR_SECRET,
        "AWS_DEFAULT_REGION": REGION,
        "SAM_CLI_TELEMETRY": "0",
        "SAM_CLI_POLL_DELAY": "0.5",  # seconds; AWS needs five
        "SAM_CLI_BETA_BUILD_PERFORMANCE": "1",  # functions with the same files have one folder,
        "SAM_CLI_BETA_PACKAGE_PERFORMANCE": "1",  # which is compressed once
        "LAYER_PYTHON": PYTHON,
        "LAYER_UV": uv(),
        "LAYER_COMPILED": str(LOCAL / "compiled"),
        "LAYER_RDS_BUNDLE": "none",
        "LAYER_PLATFORM": f"{PLATFORM}-manylinux_2_28",
    }
    log = LOGS / f"sam-{arguments[0]}.log"
    with log.open("wb") as out, working(f"sam {arguments[0]}") as tell:
        process = subprocess.Popen(
            [*sam(), *arguments],
            env=env,
            cwd=ROOT,
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
        try:
            while process.poll() is None:
                text = log.read_text(errors="replace")
                counts = {what: text.count(mark) for what, mark in SAM_STEPS[arguments[0]].items()}
                tell(", ".join(f"{count} {what}" for what, count in counts.items() if count))
                time.sleep(LOOK_EVERY_SECONDS)
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-25:])
        raise RuntimeError(f"sam {arguments[0]} failed; the end of {log}:\n{tail}")


def secret_of(stack: Stack, text: str) -> str:
    """Return the ARN of the secret with this text, which is made if it is missing.

    Another text is another secret: CloudFormation does not read a secret again while its ARN stays the same.
    """
    secrets = stack.client("secretsmanager")
    name = f"{STACK_NAME}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    try:
        return str(secrets.create_secret(Name=name, SecretString=text)["ARN"])
    except secrets.exceptions.ResourceExistsException:
        return str(secrets.describe_secret(SecretId=name)["ARN"])


def _parameters(endpoint: str, redis_url: str, identity_secret: str) -> dict[str, str]:
    return {
        "GradualDeployment": "false",
        "OutgoingWebhooks": "true",
        "OwnWarehouse": f"duckdb:{WAREHOUSE}",
        "RedisUrl": redis_url,
        "IdentityUrl": identity_secret,
        "JwtIssuer": tokens.issuer(endpoint),
        "JwtAudience": tokens.AUDIENCE,
    }


def check_parameters(given: Mapping[str, str]) -> None:
    """Raise RuntimeError for a parameter that nobody can choose on a laptop, or that has no such value."""
    if own := sorted(given.keys() & _parameters("", "", "").keys()):
        raise RuntimeError(f"a laptop cloud says itself what {', '.join(own)} is")
    try:
        parameter_values(parse((ROOT / "template.yaml").read_text())["Parameters"], given)
    except Refusal as refusal:
        raise RuntimeError(str(refusal)) from None


def _digest(parameters: Sequence[str]) -> str:
    """Return a digest of the parameters and of every file that a deployment is made of."""
    digest = hashlib.sha256("\n".join(parameters).encode())
    files = (path for part in DEPLOYED_PARTS for path in (ROOT / part, *(ROOT / part).rglob("*")))
    for path in sorted(path for path in files if path.is_file() and path.suffix != ".pyc"):
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def emulator_template(built: str, parameters: Mapping[str, str]) -> str:
    """Return a built template as the emulator takes it, as JSON. parameters: their values, by name.

    Raises RuntimeError for a template without a part that is to be changed, infra.intrinsics.Refusal for
    parameters that the template does not take.
    """
    template = parse(built)
    try:
        template["Conditions"] = conditions(template, parameters)
        for name, value in parameters.items():  # GradualDeployment=false: no resources of CodeDeploy
            template["Parameters"][name]["Default"] = value
        resources = template["Resources"]
    except KeyError as missing:
        raise RuntimeError(f"the built template has no {missing}") from missing
    secrets = {name for name, resource in resources.items() if resource["Type"] == SECRET_TYPE}
    for resource in resources.values():
        if resource["Type"] == FUNCTION_TYPE:
            properties = resource["Properties"]
            properties["Policies"] = _emulator_policies(properties.get("Policies", []), secrets)
    return json.dumps(template)


def conditions(template: Mapping[str, Any], parameters: Mapping[str, str]) -> dict[str, object]:
    """Return the template's conditions. Each is a comparison of two texts, which are equal if it holds."""
    values = parameter_values(template["Parameters"], parameters)
    scope = Scope({**values, "AWS::AccountId": ACCOUNT}, template.get("Mappings", {}), template["Conditions"])
    return {name: {"Fn::Equals": ["true", scalar_text(holds(name, scope))]} for name in scope.conditions}


def as_json(built: str) -> str:
    """Return a template as JSON: the SAM CLI reads it dozens of times, and YAML takes it seconds each."""
    return json.dumps(parse(built))


def _emulator_policies(value: Any, secrets: Collection[str]) -> Any:
    """Return a function's policies, or any value within them, with what the emulator asks for.

    secrets: the logical ids of the secrets.
    """
    if isinstance(value, list):
        items = [_emulator_policies(item, secrets) for item in value]
        return [item for changed in items for item in (changed, *_emulator_statements(changed))]
    if isinstance(value, dict):
        if value.get("Ref") in secrets:
            return {"Fn::Sub": SECRET_ARN % value["Ref"]}
        if "Fn::If" in value:  # its condition is a name, and no list of statements
            condition, *branches = value["Fn::If"]
            return {"Fn::If": [condition, *(_emulator_policies(branch, secrets) for branch in branches)]}
        return {name: _emulator_policies(inner, secrets) for name, inner in value.items()}
    return value


def _emulator_statements(statement: Any) -> list[dict[str, Any]]:
    """Return the statements that the emulator needs beside one; [] for a value that is no statement."""
    named = statement.get("Action", []) if isinstance(statement, dict) else []
    actions = {named} if isinstance(named, str) else {*named}
    return [
        # The emulator's batch of statements is a call on no table.
        {**statement, "Action": action, **({"Resource": "*"} if action == BATCH_STATEMENT else {})}
        for action in sorted({EMULATOR_ACTIONS[action] for action in actions & EMULATOR_ACTIONS.keys()})
    ]
