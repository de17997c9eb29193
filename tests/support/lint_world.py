"""A small sound template, in which tests plant faults, and what the lint's checks say of it."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from infra.lint.faults import Fault
from infra.lint.stacks import Stack, resolve_stacks

Check = Callable[[Mapping[str, Stack]], Iterator[Fault]]
SOUND = """
AWSTemplateFormatVersion: "2010-09-09"
Transform: AWS::Serverless-2016-10-31
Parameters:
  OnAws: {Type: String, Default: "true", AllowedValues: ["true", "false"]}
  CreateCache: {Type: String, Default: "false", AllowedValues: ["true", "false"]}
  CacheUrl: {Type: String, Default: "", Description: "redis:// URL of a cache that you run"}
  Issuer: {Type: String, Default: ""}
  Audience: {Type: String, Default: ""}
Rules:
  IssuerNeedsAudience:
    RuleCondition: !Not [!Equals [!Ref Issuer, ""]]
    Assertions:
      - Assert: !Not [!Equals [!Ref Audience, ""]]
        AssertDescription: Issuer needs Audience
  OneCache:
    RuleCondition: !Equals [!Ref CreateCache, "true"]
    Assertions:
      - Assert: !Equals [!Ref CacheUrl, ""]
        AssertDescription: CreateCache and CacheUrl exclude each other
Conditions:
  OnAws: !Equals [!Ref OnAws, "true"]
  HasCache: !And [!Condition OnAws, !Equals [!Ref CreateCache, "true"]]
  HasIssuer: !Not [!Equals [!Ref Issuer, ""]]
Resources:
  Network:
    Type: AWS::CloudFormation::Stack
    Condition: HasCache
    DeletionPolicy: Delete
    UpdateReplacePolicy: Delete
    Properties: {TemplateURL: network.yaml}
  Table:
    Type: AWS::DynamoDB::Table
    DeletionPolicy: RetainExceptOnCreate
    UpdateReplacePolicy: Retain
    Properties:
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
  Queue:
    Type: AWS::SQS::Queue
    Properties: {VisibilityTimeout: 60}
  Layer:
    Type: AWS::Serverless::LayerVersion
    Properties: {ContentUri: ., RetentionPolicy: Delete, CompatibleRuntimes: [python3.13], CompatibleArchitectures: [arm64]}
  Function:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: .
      Handler: main.handler
      Runtime: python3.13
      Architectures: [arm64]
      Timeout: 10
      Layers: [!Ref Layer]
      VpcConfig: !If
        - HasCache
        - SubnetIds: !Split [",", !GetAtt Network.Outputs.SubnetIds]
          SecurityGroupIds: [!GetAtt Network.Outputs.ClientId]
        - !Ref AWS::NoValue
      Environment:
        Variables:
          TABLE: !Ref Table
          REDIS_URL: !If [HasCache, !GetAtt Network.Outputs.Url, !Ref CacheUrl]
      Policies:
        - Version: "2012-10-17"
          Statement:
            - Effect: Allow
              Action: [dynamodb:GetItem, dynamodb:PutItem]
              Resource: !GetAtt Table.Arn
            - Effect: Allow
              Action: [sqs:ReceiveMessage, sqs:DeleteMessage, sqs:GetQueueAttributes]
              Resource: !GetAtt Queue.Arn
  Mapping:
    Type: AWS::Lambda::EventSourceMapping
    Properties: {EventSourceArn: !GetAtt Queue.Arn, FunctionName: !Ref Function}
  Api:
    Type: AWS::ApiGatewayV2::Api
    Properties: {Name: api, ProtocolType: HTTP}
  Authorizer:
    Type: AWS::ApiGatewayV2::Authorizer
    Condition: HasIssuer
    Properties:
      ApiId: !Ref Api
      Name: jwt
      AuthorizerType: JWT
      IdentitySource: [$request.header.Authorization]
      JwtConfiguration: {Issuer: !Ref Issuer, Audience: [!Ref Audience]}
  Permission:
    Type: AWS::Lambda::Permission
    Properties:
      FunctionName: !Ref Function
      Action: lambda:InvokeFunction
      Principal: apigateway.amazonaws.com
      SourceArn: !Sub arn:${AWS::Partition}:execute-api:${AWS::Region}:${AWS::AccountId}:${Api}/*
Outputs:
  TableName: {Value: !Ref Table}
"""
NETWORK = """
AWSTemplateFormatVersion: "2010-09-09"
Resources:
  Vpc: {Type: AWS::EC2::VPC, Properties: {CidrBlock: 10.0.0.0/16}}
  Subnet: {Type: AWS::EC2::Subnet, Properties: {VpcId: !Ref Vpc, CidrBlock: 10.0.0.0/20}}
  Client: {Type: AWS::EC2::SecurityGroup, Properties: {GroupDescription: functions, VpcId: !Ref Vpc}}
  Routes: {Type: AWS::EC2::RouteTable, Properties: {VpcId: !Ref Vpc}}
  DynamoDb:
    Type: AWS::EC2::VPCEndpoint
    Properties:
      VpcId: !Ref Vpc
      ServiceName: !Sub com.amazonaws.${AWS::Region}.dynamodb
      VpcEndpointType: Gateway
      RouteTableIds: [!Ref Routes]
  Valkey:
    Type: AWS::ElastiCache::ServerlessCache
    Properties:
      ServerlessCacheName: cache
      Engine: valkey
      SubnetIds: [!Ref Subnet]
      SecurityGroupIds: [!GetAtt Client.GroupId]
Outputs:
  SubnetIds: {Value: !Ref Subnet}
  ClientId: {Value: !GetAtt Client.GroupId}
  Url: {Value: !Sub "rediss://${Valkey.Endpoint.Address}:6379"}
"""


def planted(folder: Path, *changes: tuple[str, str], network: str = NETWORK) -> Path:
    """Write the sound template with some texts replaced; returns its path. Each text must be there."""
    text = SOUND
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    (folder / "network.yaml").write_text(network)
    (folder / "template.yaml").write_text(text)
    return folder / "template.yaml"


def said(check: Check, template: Path, **parameters: str) -> list[str]:
    """Return what a check says of a template with these parameters, sorted."""
    return sorted(str(each) for each in check(resolve_stacks(parameters, template)))
