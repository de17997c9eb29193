"""Words that Redshift reserves, runs on its leader alone, or does not know."""

GUIDE = "https://docs.aws.amazon.com/redshift/latest/dg/"

# GUIDE + r_pg_keywords.html
RESERVED = frozenset(
    """aes128 aes256 all allowoverwrite analyse analyze and any array as asc authorization az64 backup between
    binary blanksasnull both bytedict bzip2 case cast check collate column constraint create credentials cross
    current_date current_time current_timestamp current_user current_user_id default deferrable deflate defrag
    delta delta32k desc disable distinct do else emptyasnull enable encode encrypt encryption end except explicit
    false for foreign freeze from full globaldict256 globaldict64k grant group gzip having identity ignore ilike in
    initially inner intersect interval into is isnull join leading left like limit localtime localtimestamp lun
    luns lzo lzop minus mostly16 mostly32 mostly8 natural new not notnull null nulls off offline offset oid old on
    only open or order outer overlaps parallel partition percent permissions pivot placing primary raw readratio
    recover references rejectlog resort respect restore right select session_user similar snapshot some sysdate
    system table tag tdes text255 text32k then timestamp to top trailing true truncatecolumns union unique unnest
    unpivot user using verbose wallet when where with without""".split()  # noqa: SIM905 (as quoted words they say no more)
)
# GUIDE + c_SQL_functions_leader_node_only.html; the second half is deprecated there
LEADER_ONLY = frozenset(
    """current_schema current_schemas has_database_privilege has_schema_privilege has_table_privilege substr
    factorial log
    age current_time current_timestamp localtime isfinite now getbit get_byte set_bit set_byte
    to_ascii""".split()  # noqa: SIM905
)
# GUIDE + c_unsupported-postgresql-functions.html
UNKNOWN_FUNCTIONS = frozenset(
    """string_agg array_agg every xml_agg corr covar_pop covar_samp regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy clock_timestamp justify_days justify_hours
    justify_interval pg_sleep transaction_timestamp div setseed width_bucket generate_series
    generate_subscripts bit_length overlay convert_from convert_to encode format quote_nullable regexp_matches
    regexp_split_to_array regexp_split_to_table unnest""".split()  # noqa: SIM905
)
# GUIDE + c_unsupported-postgresql-datatypes.html
UNKNOWN_TYPES = frozenset(
    """array bit varbit bytea enum hstore json jsonb inet cidr macaddr serial bigserial smallserial money oid
    name int4range int8range numrange tsrange tstzrange daterange tsvector tsquery txid_snapshot uuid
    xml""".split()  # noqa: SIM905
)
# Today's date in a model would make it say something else tomorrow (sql/README.md).
OF_TODAY = frozenset({"current_date", "getdate", "sysdate", "random", "rand"})
# GUIDE + c_Compression_encodings.html: by codec, the types that it is for. RAW is for all.
CODECS = {
    "AZ64": frozenset({"SMALLINT", "INTEGER", "BIGINT", "DECIMAL", "DATE", "TIMESTAMP", "TIMESTAMPTZ"}),
    "ZSTD": frozenset(
        {"SMALLINT", "INTEGER", "BIGINT", "DECIMAL", "DATE", "TIMESTAMP", "TIMESTAMPTZ"}
        | {"REAL", "DOUBLE PRECISION", "BOOLEAN", "CHAR", "VARCHAR"}
    ),
}
# GUIDE + copy-usage_notes-copy-from-columnar.html: what COPY takes with Parquet
COPY_TAKES = frozenset(
    {
        "ACCEPTINVCHARS",
        "FILLRECORD",
        "FORMAT",
        "IAM_ROLE",
        "CREDENTIALS",
        "STATUPDATE",
        "MANIFEST",
        "EXPLICIT_IDS",
    }
)
