"""The manifest of leads: what the part has, by kind (rules/parts.py says who asks for it)."""

MANIFEST = {
    # rules
    "lake_entities": "rules.leads.lake_entities:ENTITIES",
    "stores": "rules.leads.stores:STORES",
    "followed_tables": "rules.leads.followed_tables:TABLES",
    "notices": "rules.leads.notice_kinds:KINDS",
    # adapters
    "erasers": "adapters.leads.erasers:ERASERS",
    # ingest
    "routes": "ingest.leads.part_routes:ROUTES",
    "person_routes": "ingest.leads.person_routes:ROUTES",
    "codes": "rules.leads.codes:CODES",
    # processors
    "noticed_changes": "processors.leads.noticed_changes:CHANGES",
}
