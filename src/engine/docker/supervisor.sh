# The first process of a container. Each line on standard input starts the server once more; the end
# of standard input ends the container, and the server with it: that is how the container dies with
# the program that made it, also on `kill -9`.
while read -r line; do
    (
        docker-entrypoint.sh postgres "$@" </dev/null
        echo "remeasure: the server ended with status $?"
    ) &
done
