"""Other variables for a function of the deployed cloud, behind its alias too."""

from collections.abc import Mapping

from local.stack import Stack


def release(stack: Stack, name: str, variables: Mapping[str, str]) -> None:
    """Let a function have these variables from its next process on, whether its alias is called or not."""
    functions = stack.client("lambda")
    functions.update_function_configuration(FunctionName=name, Environment={"Variables": dict(variables)})
    aliases = [each["Name"] for each in functions.list_aliases(FunctionName=name)["Aliases"]]
    if aliases:
        version = functions.publish_version(FunctionName=name)["Version"]
    for alias in aliases:
        functions.update_alias(FunctionName=name, Name=alias, FunctionVersion=version)
