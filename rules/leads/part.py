"""The manifest of leads: what the part has, by kind (rules/parts.py says who asks for it)."""

MANIFEST = {
    # rules
    "lake_entities": "rules.leads.lake_entities:ENTITIES",
    "stores": "rules.leads.stores:STORES",
    "followed_tables": "rules.leads.followed_tables:TABLES",
    "notices": "rules.leads.notice_kinds:KINDS",
    # adapters
    "settings": "rules.leads.settings:SETTINGS",
    "erasers": "adapters.leads.erasers:ERASERS",
    # ingest
    "routes": "ingest.leads.part_routes:ROUTES",
    "person_routes": "ingest.leads.person_routes:ROUTES",
    "codes": "rules.leads.codes:CODES",
    # processors
    "noticed_changes": "processors.leads.noticed_changes:CHANGES",
    # analytics
    "findings": "analytics.leads.lead_repair:FINDINGS",
    "retention": "analytics.leads.raw_payloads:RETENTION",
    "restores": "analytics.leads.restore:RESTORE",
    "models": "analytics.leads.feature_models:GENERATED",
    # local
    "smoke": "local.leads.smoke:SMOKE",
    "demo": "local.leads.demo:DEMO",
    "traffic": "local.leads.traffic:TRAFFIC",
    "commands": "local.leads.commands:COMMANDS",
    # infra
    "filters": "rules.leads.filters:FILTERS",
    # bench
    "units": "bench.units.leads:UNITS",
    "benchmarks": "bench.leads:BENCHMARKS",
}
