-- The triggers of a covered table. $place is its place among them, $of the covered columns, $held what
-- the row held in them; $old and $new name the row.
CREATE TEMP TRIGGER $table_row_added AFTER INSERT ON main.$table BEGIN
    SELECT row_touched($place, $new);
END;
CREATE TEMP TRIGGER $table_row_changed AFTER UPDATE OF $of ON main.$table BEGIN
    SELECT row_touched($place, $old, $held);
    SELECT row_touched($place, $new) WHERE $new IS NOT $old;
END;
CREATE TEMP TRIGGER $table_row_deleted AFTER DELETE ON main.$table BEGIN
    SELECT row_touched($place, $old, $held);
END;
