"""The door for webhooks as vendors send them, without a token: POST /v1/hooks/{organization}/{source}."""
