"""Each check names the fault that is planted into a sound template, and says nothing of the sound one."""

from pathlib import Path

import pytest

from infra.lint import functions, iam, templates
from infra.lint.run import CHECKS
from tests.support.lint_world import NETWORK, planted, said

SETS: tuple[dict[str, str], ...] = (
    {},
    {"CreateCache": "true"},
    {"OnAws": "false"},
    {"Issuer": "https://a", "Audience": "b"},
)


@pytest.mark.parametrize("parameters", SETS)
def test_a_sound_template_has_no_fault(tmp_path: Path, parameters: dict[str, str]) -> None:
    template = planted(tmp_path)
    found = [
        each
        for check in (*CHECKS, templates.protection_faults, functions.reserved_faults)
        for each in said(check, template, **parameters)
    ]
    assert [*found, *iam.partition_faults(template)] == []


CANARY = """      Timeout: 10
      AutoPublishAlias: live
      DeploymentPreference: {Type: Canary10Percent5Minutes}
"""


@pytest.mark.parametrize("parameters", SETS)
def test_a_canary_deployment_has_no_fault(tmp_path: Path, parameters: dict[str, str]) -> None:
    template = planted(
        tmp_path,
        ("      Timeout: 10\n", CANARY),
        ("FunctionName: !Ref Function}", "FunctionName: !Ref Function.Alias}"),
    )
    assert [each for check in CHECKS for each in said(check, template, **parameters)] == []
    sooner = template.read_text().replace("Timeout: 60", "Timeout: 9")
    template.write_text(sooner)
    on_aws = parameters.get("OnAws", "true") == "true"
    assert len(said(functions.queue_faults, template, **parameters)) == on_aws


VPC_POLICY = "!Sub 'arn:${AWS::Partition}:iam::aws:policy/service-role/AWSLambdaVPCAccessExecutionRole'"
TWICE = ("      Policies:\n", f"      Policies:\n        - !If [HasCache, {VPC_POLICY}, !Ref AWS::NoValue]\n")


def test_the_policy_that_sam_adds_itself_is_named_again(tmp_path: Path) -> None:
    (line,) = said(iam.role_faults, planted(tmp_path, TWICE), CreateCache="true")
    assert line.startswith(
        "/ FunctionRole: it has the managed policy arn:aws:iam::aws:policy/service-role/AWSLambdaVPC"
    )
    assert "twice: SAM adds it itself" in line
    assert said(iam.role_faults, planted(tmp_path, TWICE)) == []


def test_concurrency_is_reserved_by_default(tmp_path: Path) -> None:
    change = ("      Timeout: 10\n", "      Timeout: 10\n      ReservedConcurrentExecutions: 5\n")
    (line,) = said(functions.reserved_faults, planted(tmp_path, change))
    assert (
        line
        == "/ Function: 1 functions reserve 5 concurrent executions; a new account may have 10, so nothing can be made"
    )


@pytest.mark.parametrize(("number", "is_fault"), [(900, False), (901, True)])
def test_more_concurrency_is_reserved_than_an_account_has(
    tmp_path: Path, number: int, is_fault: bool
) -> None:
    change = ("      Timeout: 10\n", f"      Timeout: 10\n      ReservedConcurrentExecutions: {number}\n")
    found = said(functions.quota_faults, planted(tmp_path, change))
    line = "/ Function: 1 functions reserve 901 concurrent executions; an account with the usual quota may reserve 900"
    assert found == ([line] if is_fault else [])


def test_a_service_without_an_endpoint_is_no_exception_for_one_of_its_actions(tmp_path: Path) -> None:
    """redshift-data asks for credentials by the function's role; all else of redshift-serverless needs an endpoint."""
    for action, faults in (("GetCredentials", 0), ("GetNamespace", 1)):
        change = ("[sqs:ReceiveMessage,", f"['redshift-serverless:{action}', sqs:ReceiveMessage,")
        found = said(functions.network_faults, planted(tmp_path, change), CreateCache="true")
        assert len(found) == faults, found


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("[arm64]}", "[x86_64]}", "/ Function: it runs on arm64, but its layer Layer does not"),
        (
            "Runtimes: [python3.13]",
            "Runtimes: [python3.12]",
            "/ Function: it runs on python3.13, but its layer Layer does not",
        ),
        (
            "[arm64]",
            "[x86_64]",
            "/ Layer: functions run on x86_64, but infra/layer/build builds it for arm64",
        ),
        (
            "python3.13",
            "python3.12",
            "/ Layer: functions run on python3.12, but infra/layer/build builds it for python3.13",
        ),
    ],
)
def test_a_layer_is_for_another_machine_than_its_function(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    script = "${LAYER_PYTHON:-3.13} ${LAYER_PLATFORM:-aarch64-manylinux_2_28}"
    assert said(lambda stacks: functions.layer_faults(stacks, script), planted(tmp_path, (old, new))) == [
        reason
    ]


def test_a_layer_that_is_built_for_what_it_is_asked_for_is_sound(tmp_path: Path) -> None:
    change = ("[arm64]", "[x86_64]")
    assert (
        said(lambda stacks: functions.layer_faults(stacks, "$LAYER_PLATFORM"), planted(tmp_path, change))
        == []
    )


def test_a_failed_deployment_leaves_something_behind(tmp_path: Path) -> None:
    template = planted(tmp_path, ("RetainExceptOnCreate", "Retain"))
    assert said(templates.retention_faults, template) == [f"/ Table: {templates.LEFT}"]


@pytest.mark.parametrize(
    ("name", "fixed"),
    [
        ("rows", True),
        ("!Sub '${AWS::StackName}-rows'", True),
        ("!Select [2, !Split ['/', !Ref AWS::StackId]]", False),
    ],
)
def test_what_is_kept_has_a_fixed_name(tmp_path: Path, name: str, fixed: bool) -> None:
    template = planted(tmp_path, ("      KeySchema:", f"      TableName: {name}\n      KeySchema:"))
    found = said(templates.retention_faults, template)
    assert (len(found) == 1 and "finds its TableName" in found[0]) if fixed else not found


def test_what_is_not_kept_may_have_a_fixed_name(tmp_path: Path) -> None:
    template = planted(
        tmp_path,
        ("RetainExceptOnCreate", "Delete"),
        ("      KeySchema:", "      TableName: rows\n      KeySchema:"),
    )
    assert said(templates.retention_faults, template) == []


def test_deletion_protection_hinders_the_rollback(tmp_path: Path) -> None:
    template = planted(
        tmp_path, ("      KeySchema:", "      DeletionProtectionEnabled: 'true'\n      KeySchema:")
    )
    (line,) = said(templates.protection_faults, template)
    assert line == "/ Table: it has deletion protection, so a failed first deployment cannot be rolled back"


def test_a_database_outside_is_given_to_a_function_without_a_way_out(tmp_path: Path) -> None:
    change = ("          TABLE:", "          IDENTITY_URL: postgresql://db.example.com/x\n          TABLE:")
    template = planted(tmp_path, change)
    (line,) = said(functions.network_faults, template, CreateCache="true")
    assert (
        line
        == "/ Function: its IDENTITY_URL is outside, but its network has no way out: the function needs subnets of yours"
    )
    assert said(functions.network_faults, template) == []
    with_nat = NETWORK.replace("Resources:\n", "Resources:\n  Nat: {Type: AWS::EC2::NatGateway}\n")
    assert (
        said(functions.network_faults, planted(tmp_path, change, network=with_nat), CreateCache="true") == []
    )


def test_a_service_has_no_endpoint_in_the_functions_network(tmp_path: Path) -> None:
    template = planted(tmp_path, ("[sqs:ReceiveMessage,", "[sqs:SendMessage, sqs:ReceiveMessage,"))
    (line,) = said(functions.network_faults, template, CreateCache="true")
    assert line == "/ Function: it may call sqs, but its network has no endpoint of sqs"


def test_a_function_outside_is_given_a_cache_inside(tmp_path: Path) -> None:
    template = planted(
        tmp_path, ("      VpcConfig: !If\n        - HasCache", "      VpcConfig: !If\n        - HasIssuer")
    )
    (line,) = said(functions.network_faults, template, CreateCache="true")
    assert line == "/ Function: its REDIS_URL is in a network, but it is in none"


def test_a_warehouse_is_given_without_its_permissions(tmp_path: Path) -> None:
    change = ("          TABLE:", "          WAREHOUSE_URL: redshift://workgroup/database\n          TABLE:")
    (line,) = said(functions.network_faults, planted(tmp_path, change))
    assert line.endswith(
        "WAREHOUSE_URL is a warehouse, but its role may not call redshift-data:ExecuteStatement"
    )


def test_an_issuer_comes_without_its_audience_if_no_rule_refuses_that(tmp_path: Path) -> None:
    template = planted(tmp_path, ("Rules:\n", "Metadata:\n"))
    (line,) = said(templates.value_faults, template, Issuer="https://a")
    assert (
        line
        == "/ Authorizer: its JwtConfiguration.Audience has an empty string: Rules should refuse these parameters"
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            (
                "    DeletionPolicy: RetainExceptOnCreate",
                "    Condition: HasCache\n    DeletionPolicy: RetainExceptOnCreate",
            ),
            "Function: it names Table, which is not made: its condition HasCache does not hold",
        ),
        (
            ("  Permission:\n", "  Permission:\n    DependsOn: Network\n"),
            "Permission: it names Network, which is not made: its condition HasCache does not hold",
        ),
        (
            ("Value: !Ref Table", "Value: !Sub '${Network.Outputs.Url}/x'"),
            "output TableName: it names Network, which is not made: its condition HasCache does not hold",
        ),
        (("TABLE: !Ref Table", "TABLE: !Ref Tabel"), "Function: it names Tabel, which no template declares"),
    ],
)
def test_something_that_is_not_made_is_named(tmp_path: Path, change: tuple[str, str], reason: str) -> None:
    assert f"/ {reason}" in said(templates.absence_faults, planted(tmp_path, change))


def test_an_output_that_a_nested_stack_does_not_have_is_named(tmp_path: Path) -> None:
    found = said(
        templates.absence_faults, planted(tmp_path, ("Outputs.Url", "Outputs.Address")), CreateCache="true"
    )
    assert found == ["/ Function: it names the output Address of Network, which is not there"]


def test_an_arn_is_of_one_partition_only(tmp_path: Path) -> None:
    template = planted(tmp_path, ("arn:${AWS::Partition}:execute-api", "arn:aws:execute-api"))
    (fault,) = iam.partition_faults(template)
    assert fault.place == "Permission"
    assert "arn:aws:execute-api" in fault.reason


def test_a_state_machine_names_one_partition_only(tmp_path: Path) -> None:
    machine = "  Machine:\n    Type: AWS::Serverless::StateMachine\n    Properties: {DefinitionUri: machine.json}\nOutputs:"
    (tmp_path / "machine.json").write_text('{"Resource": "arn:aws:states:::lambda:invoke"}')
    (fault,) = iam.partition_faults(planted(tmp_path, ("Outputs:\n  T", machine + "\n  T")))
    assert str(fault).startswith(
        "template.yaml Machine: arn:aws:states:::lambda:invoke is of one partition only"
    )


def test_a_permission_is_for_another_services_arn(tmp_path: Path) -> None:
    (line,) = said(iam.role_faults, planted(tmp_path, ("}:execute-api:", "}:sns:")))
    assert line.startswith("/ Permission: it lets apigateway invoke the function for arn:aws:sns:")


def test_a_message_is_hidden_for_less_than_its_function_may_run(tmp_path: Path) -> None:
    assert said(functions.queue_faults, planted(tmp_path, ("Timeout: 60", "Timeout: 9"))) == [
        "/ Queue: a message is hidden for 9 s, but Function may run for 10 s"
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("          TABLE:", f"          LONG: {'x' * 4096}\n          TABLE:"), "bytes; 4096 are allowed"),
        (
            ("Layers: [!Ref Layer]", f"Layers: [{', '.join(['!Ref Layer'] * 6)}]"),
            "it has 6 layers; 5 are allowed",
        ),
        (
            ("Outputs:\n", "Outputs:\n" + "".join(f"  O{n}: {{Value: x}}\n" for n in range(200))),
            "/ Outputs: the template has 201; 200 are allowed",
        ),
        (
            (
                "Outputs:\n",
                "".join(f"  T{n}: {{Type: AWS::SNS::Topic}}\n" for n in range(500)) + "Outputs:\n",
            ),
            "/ Resources: the template has 510; 500 are allowed",
        ),
        (("Transform:", f"# {'x' * 1_000_000}\nTransform:"), "1000000 are allowed"),
    ],
)
def test_a_limit_is_passed(tmp_path: Path, change: tuple[str, str], reason: str) -> None:
    (line,) = said(templates.limit_faults, planted(tmp_path, change))
    assert reason in line


def test_a_role_is_beyond_its_quotas(tmp_path: Path) -> None:
    many = "".join(f"        - !Sub arn:${{AWS::Partition}}:iam::aws:policy/P{n}\n" for n in range(9))
    (line,) = said(iam.role_faults, planted(tmp_path, ("      Policies:\n", "      Policies:\n" + many)))
    assert line == "/ FunctionRole: it has 11 managed policies; 10 are allowed"
    long = ("Action: [dynamodb:GetItem,", f"Sid: {'x' * 10_240}\n              Action: [dynamodb:GetItem,")
    (line,) = said(iam.role_faults, planted(tmp_path, long))
    assert "characters; 10240 are allowed" in line
