"""Stand-ins for what only AWS knows: the ARNs and names of resources that are made. All are well-formed."""

import hashlib
import re
from typing import Any

from infra.lint.expanded import REGION

PARTITION = "aws"
ACCOUNT = "123456789012"
STACK = "streakline"
STACK_ID = (
    f"arn:{PARTITION}:cloudformation:{REGION}:{ACCOUNT}:stack/{STACK}/51af3dc0-da77-11e4-872e-1234567db123"
)
PSEUDO: dict[str, Any] = {
    "AWS::AccountId": ACCOUNT,
    "AWS::NotificationARNs": [],
    "AWS::Partition": PARTITION,
    "AWS::Region": REGION,
    "AWS::StackId": STACK_ID,
    "AWS::StackName": STACK,
    "AWS::URLSuffix": "amazonaws.com",
}
# type of resource -> the rest of its ARN. A type that is missing here has its service's usual form.
ARNS = {
    "AWS::ApiGatewayV2::Api": "execute-api:{at}:{name}",
    "AWS::Cognito::UserPool": "cognito-idp:{at}:userpool/{name}",
    "AWS::DynamoDB::Table": "dynamodb:{at}:table/{name}",
    "AWS::Glue::Database": "glue:{at}:database/{name}",
    "AWS::IAM::Role": "iam::{account}:role/{name}",
    "AWS::IAM::ManagedPolicy": "iam::{account}:policy/{name}",
    "AWS::Kinesis::Stream": "kinesis:{at}:stream/{name}",
    "AWS::KinesisFirehose::DeliveryStream": "firehose:{at}:deliverystream/{name}",
    "AWS::KMS::Key": "kms:{at}:key/{name}",
    "AWS::Lambda::Function": "lambda:{at}:function:{name}",
    "AWS::Lambda::Alias": "lambda:{at}:function:{name}:live",
    "AWS::Lambda::Version": "lambda:{at}:function:{name}:1",
    "AWS::Lambda::LayerVersion": "lambda:{at}:layer:{name}:1",
    "AWS::Logs::LogGroup": "logs:{at}:log-group:{name}:*",
    "AWS::RDS::DBCluster": "rds:{at}:cluster:{name}",
    "AWS::RDS::DBProxy": "rds:{at}:db-proxy:prx-{name}",
    "AWS::RedshiftServerless::Namespace": "redshift-serverless:{at}:namespace/{name}",
    "AWS::RedshiftServerless::Workgroup": "redshift-serverless:{at}:workgroup/{name}",
    "AWS::S3::Bucket": "s3:::{name}",
    "AWS::SecretsManager::Secret": "secretsmanager:{at}:secret:{name}-a1b2c3",
    "AWS::SNS::Topic": "sns:{at}:{name}",
    "AWS::SQS::Queue": "sqs:{at}:{name}",
    "AWS::StepFunctions::StateMachine": "states:{at}:stateMachine:{name}",
}
# Types whose Ref is their ARN.
REF_IS_ARN = {
    "AWS::Lambda::Alias",
    "AWS::Lambda::LayerVersion",
    "AWS::Lambda::Version",
    "AWS::IAM::ManagedPolicy",
    "AWS::SecretsManager::Secret",
    "AWS::SNS::Topic",
    "AWS::StepFunctions::StateMachine",
}
EC2_IDS = {
    "VPC": "vpc",
    "Subnet": "subnet",
    "SecurityGroup": "sg",
    "RouteTable": "rtb",
    "VPCEndpoint": "vpce",
}


def arn(kind: str, logical_id: str) -> str:
    """Return a resource's ARN."""
    at = f"{REGION}:{ACCOUNT}"
    service = kind.split("::")[1].lower() if "::" in kind else "custom"
    form = ARNS.get(kind, service + ":{at}:{name}")
    return f"arn:{PARTITION}:" + form.format(at=at, account=ACCOUNT, name=name(kind, logical_id))


def name(kind: str, logical_id: str) -> str:
    """Return a resource's name or id: bucket-, queue-, subnet-like, as its type has them."""
    *_, last = kind.split("::")
    digest = hashlib.sha256(logical_id.encode()).hexdigest()
    if kind.startswith("AWS::EC2::"):
        return f"{EC2_IDS.get(last, 'id')}-{digest[:17]}"
    if kind == "AWS::ApiGatewayV2::Api":
        return re.sub(r"\d", "a", digest)[:10]
    made = f"{STACK}-{logical_id}-{digest[:12]}"
    return made.lower() if kind == "AWS::S3::Bucket" else made


def ref(kind: str, logical_id: str) -> str:
    """Return what Ref gives of a resource."""
    if kind == "AWS::SQS::Queue":
        return f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{name(kind, logical_id)}"
    return arn(kind, logical_id) if kind in REF_IS_ARN else name(kind, logical_id)


def attribute(kind: str, logical_id: str, wanted: str) -> str:
    """Return what Fn::GetAtt gives of a resource, an ARN if the attribute's name ends so."""
    if wanted.lower().endswith("streamarn") and kind == "AWS::DynamoDB::Table":
        return arn(kind, logical_id) + "/stream/2026-01-01T00:00:00.000"
    if wanted == "MasterUserSecret.SecretArn":
        return arn("AWS::SecretsManager::Secret", f"rds!{logical_id}")
    if wanted.lower().endswith("arn"):
        return arn(kind, logical_id)
    if wanted == "ApiEndpoint":
        return f"https://{name(kind, logical_id)}.execute-api.{REGION}.amazonaws.com"
    if wanted in ("Endpoint.Port", "Port"):
        return "5432"
    return f"{name(kind, logical_id)}.{wanted.lower()}" if "." in wanted else name(kind, logical_id)
