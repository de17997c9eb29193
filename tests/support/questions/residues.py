"""Texts of questions' residues that are nobody's own words (tests/unit/privacy/test_residue.py)."""

VOCABULARIES = {
    "responses": {"question_id", "agent_id", "question_type", "category"},
    "answer_stats": {"badges", "answers_by_category"},
    "notifications": {"message", "question_id", "outcome", "version"},
}
