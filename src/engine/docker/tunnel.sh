# Copies between standard input and output and the server's port in the container, with what the
# image has; ends when either side does. Argument: the port.
if command -v perl >/dev/null; then
    exec perl -MSocket=:DEFAULT,IPPROTO_TCP,TCP_NODELAY -e '
        sub copy {
            my ($from, $to) = @_;
            while (sysread($from, my $part, 65536)) {
                my $at = 0;
                while ($at < length $part) {
                    $at += syswrite($to, $part, length($part) - $at, $at) || return;
                }
            }
        }
        $SIG{PIPE} = "IGNORE";
        socket(my $server, PF_INET, SOCK_STREAM, 0) or die "$!\n";
        connect($server, sockaddr_in($ARGV[0], INADDR_LOOPBACK)) or die "$!\n";
        setsockopt($server, IPPROTO_TCP, TCP_NODELAY, 1);
        defined(my $sender = fork) or die "$!\n";
        if ($sender) {
            copy($server, *STDOUT);
            kill "KILL", $sender;
            waitpid $sender, 0;
        } else {
            copy(*STDIN, $server);
            shutdown($server, 1);
        }
    ' "$1"
elif command -v bash >/dev/null; then
    exec bash -c '
        exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
        cat <&3 & receiver=$!
        cat <&0 >&3 & sender=$!
        wait -n
        kill $receiver $sender 2>/dev/null
        wait
    ' bash "$1"
else
    exec nc 127.0.0.1 "$1"
fi
