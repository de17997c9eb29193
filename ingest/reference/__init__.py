"""The API's reference as a page: GET /v1/docs, made from the OpenAPI document."""
