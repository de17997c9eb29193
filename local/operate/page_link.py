"""The link that signs a person in to the web page of the laptop cloud."""

from local.stack import Stack


def link(stack: Stack, bearer: str) -> str:
    """Return the page's address with a token. The slash before `#` matters: the page's links are relative.

    The token is in the fragment. Browsers send a fragment to no server, and the page removes it at once.
    """
    return f"{stack.api_url.rstrip('/')}/#token={bearer}"
