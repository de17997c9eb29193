"""The commands about leads, by the section of `streakline --help` (local/cli.py)."""

COMMANDS = {
    "Use it": {
        "hook": (
            "Addresses that vendors' webhooks come to, and their secrets.",
            {
                "add": ("local.leads.hooks:add", "Make an address"),
                "list": ("local.leads.hooks:list_hooks", "All addresses"),
                "rotate": ("local.leads.hooks:rotate", "Change an address's secret"),
                "remove": ("local.leads.hooks:remove", "End an address"),
            },
        ),
    },
    "Ask it": {
        "features": (
            "Features of leads: make them anew, and as of past instants.",
            {
                "rebuild": ("local.leads.features:rebuild_command", "From stored events"),
                "training-set": ("local.leads.features:training_set_command", "As of labels' instants"),
            },
        ),
    },
}
