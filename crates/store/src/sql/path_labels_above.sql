-- A file and the folders above it.
SELECT label FROM path_labels
WHERE path = ?1 OR path || '/' = substr(?1, 1, length(path) + 1)
