"""The web page of the laptop cloud: the link that signs a person in."""

from local.stack import Stack


def link(stack: Stack, bearer: str) -> str:
    """Return the page's address with a token; the slash matters, as all its links are relative.

    The token is in the fragment, which browsers send to nobody, and the page takes it out at once.
    """
    return f"{stack.api_url.rstrip('/')}/#token={bearer}"
