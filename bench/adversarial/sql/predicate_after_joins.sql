-- Returns the good documents under open licences in one family of languages.
SELECT id, quality
FROM documents
JOIN licences ON documents.licence = licences.licence
JOIN languages ON documents.language = languages.language
WHERE is_good(quality) AND is_open AND family = 2
