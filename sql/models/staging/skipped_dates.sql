-- Whole dates that a zone's clocks jumped over, from the tz database. Each alias of a zone has its own row.
SELECT CAST('Kwajalein' AS VARCHAR(64)) AS zone, CAST('1993-08-21' AS DATE) AS skipped_date
UNION ALL SELECT 'Pacific/Apia', CAST('2011-12-30' AS DATE)
UNION ALL SELECT 'Pacific/Enderbury', CAST('1994-12-31' AS DATE)
UNION ALL SELECT 'Pacific/Fakaofo', CAST('2011-12-30' AS DATE)
UNION ALL SELECT 'Pacific/Kanton', CAST('1994-12-31' AS DATE)
UNION ALL SELECT 'Pacific/Kiritimati', CAST('1994-12-31' AS DATE)
UNION ALL SELECT 'Pacific/Kwajalein', CAST('1993-08-21' AS DATE)
