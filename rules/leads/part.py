"""The manifest of leads: what the part has, by kind (rules/parts.py says who asks for it)."""

MANIFEST = {
    # rules
    "lake_entities": "rules.leads.lake_entities:ENTITIES",
    "stores": "rules.leads.stores:STORES",
    "followed_tables": "rules.leads.followed_tables:TABLES",
    "notices": "rules.leads.notice_kinds:KINDS",
    # processors
    "noticed_changes": "processors.leads.noticed_changes:CHANGES",
}
