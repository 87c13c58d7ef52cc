-- The predicate behind both joins.
SELECT /*+ BROADCAST(licences), BROADCAST(languages) */ id, quality
FROM documents
JOIN licences ON documents.licence = licences.licence
JOIN languages ON documents.language = languages.language
WHERE is_open AND family = 2 AND is_good(quality)
