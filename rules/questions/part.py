"""The manifest of questions: what the part has, by kind (rules/parts.py says who asks for it)."""

MANIFEST = {
    # rules
    "lake_entities": "rules.questions.lake_entities:ENTITIES",
    "residues": "rules.questions.lake_entities:RESIDUES",
    "kept_tables": "rules.questions.phone_items:TABLES",
    "stores": "rules.questions.stores:STORES",
    "followed_tables": "rules.questions.followed_tables:TABLES",
    "notices": "rules.questions.notice_kinds:KINDS",
    # adapters
    "settings": "rules.questions.settings:SETTINGS",
    "erasers": "adapters.questions.erasers:ERASERS",
    # ingest
    "routes": "ingest.questions.part_routes:ROUTES",
    "codes": "rules.questions.codes:CODES",
    # processors
    "noticed_changes": "processors.questions.noticed_changes:CHANGES",
    # analytics
    "nights": "analytics.questions.reconcile_answers:NIGHT",
    "lake_passes": "analytics.questions.gone_phones:GonePhones",
    "retention": "analytics.questions.answer_texts:RETENTION",
    "restores": "analytics.questions.restore:RESTORE",
    # local
    "smoke": "local.questions.smoke:SMOKE",
    "demo": "local.questions.demo:DEMO",
    "traffic": "local.questions.traffic:TRAFFIC",
    "fingerprints_needed": "rules.questions.questions:OPEN_MAX",
    # bench
    "units": "bench.units.questions:UNITS",
    "threads": "processors.questions.threads:THREADS",
}
