# needs: python3 script
# Programs that open a terminal.
script -qec 'tty && stty size' /dev/null | grep -q '^/dev/pts/'
python3 -c 'import pty, os; os._exit(os.waitstatus_to_exitcode(pty.spawn(["sh", "-c", "test -t 0 && test -t 1 && : > /dev/tty"])))'
