# Makes a data directory with the image's own programs. Arguments: the SQL that makes the author's
# role, then those of initdb.
set -e
sql=$1
shift
initdb --pgdata "$PGDATA" "$@" </dev/null
printf '%s' "$sql" | postgres --single -j -F -D "$PGDATA" template1
echo "include 'remeasure.conf'" >> "$PGDATA/postgresql.conf"
: > "$PGDATA/remeasure.conf"
echo "remeasure: initialised"
# What was made is fetched from the running container, which the end of standard input ends.
cat
