# The first process of a container. It says what the kernel has granted the container, of control
# groups of the second version and the first.
granted() {
    [ -r "/sys/fs/cgroup/$2" ] || return 0
    read -r value < "/sys/fs/cgroup/$2"
    echo "remeasure: granted $1 $value"
}
granted memory memory.max
granted memory memory/memory.limit_in_bytes
granted cpu cpu.max
granted pids pids.max
granted pids pids/pids.max
if [ -r /sys/fs/cgroup/cpu/cpu.cfs_quota_us ]; then
    read -r quota < /sys/fs/cgroup/cpu/cpu.cfs_quota_us
    read -r period < /sys/fs/cgroup/cpu/cpu.cfs_period_us
    echo "remeasure: granted cpu $quota $period"
fi
df -kP /dev/shm | while read -r _ kilobytes _; do echo "remeasure: granted shm $kilobytes"; done
echo "remeasure: granted that"

# Each line on standard input starts the server once more; the end of standard input ends the
# container, and the server with it: that is how the container dies with the program that made it,
# also on `kill -9`.
while read -r line; do
    (
        docker-entrypoint.sh postgres "$@" </dev/null
        echo "remeasure: the server ended with status $?"
    ) &
done
