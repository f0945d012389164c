# Makes a data directory as the embedded engine does, with the image's own programs. Arguments: the
# major version, and the SQL that makes the author's role.
set -e
major=$1
sql=$2
set -- --no-locale --encoding UTF8 --no-sync --auth trust \
    --set shared_buffers=128MB --set max_connections=100
if [ "$major" -ge 18 ]; then
    set -- "$@" --data-checksums
fi
initdb --pgdata "$PGDATA" --username postgres "$@" </dev/null
printf '%s' "$sql" | postgres --single -j -F -D "$PGDATA" template1
echo "include 'remeasure.conf'" >> "$PGDATA/postgresql.conf"
: > "$PGDATA/remeasure.conf"
echo "remeasure: initialised"
# What was made is fetched from the running container, which the end of standard input ends.
cat
