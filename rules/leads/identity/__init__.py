"""Who somebody is: identities in their one spelling, and what they prove."""
