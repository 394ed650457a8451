# What is done inside of a machine: `sh -c THIS sh VERB ARGUMENT…`. Needs what busybox, or
# coreutils with findutils, have. What concerns a file is answered in one line first: `ok` with
# what was asked for, or `path` or `missing` with what is to be said of the path.

draft=.automaton-upload

answer() {
    echo "$@"
    exit
}

# Goes no further where a link is at $at.
look() {
    [ ! -L "$at" ] || answer path "leads through a link, and no link is followed: name the file itself"
}

# Goes along names below a folder, to what has to be there.
walk() {
    at=$1
    shift
    look
    for name; do
        at=$at/$name
        look
    done
    [ -e "$at" ] || answer missing "does not exist"
}

file() {
    [ ! -d "$at" ] || answer path "is a directory, not a file"
    [ -f "$at" ] || answer path "is a device, pipe or socket, not a file"
}

verb=$1
shift
case $verb in
prepare)
    mkdir -p /root /tmp /usr/local /opt /srv /home /var/lib || exit
    for tool in timeout stat find cat mv rm chmod; do
        command -v "$tool" >/dev/null || answer path "has no program '$tool'"
    done
    echo ok
    ;;
run) # SECONDS LINE
    # Whoever started it holds the time; it does not depend on them alone.
    echo $$
    cd /root || exit 125
    exec timeout -s KILL "$1" sh -c "$2"
    ;;
kill) # SESSION
    for process in /proc/[0-9]*; do
        read -r line <"$process/stat" || continue
        # After its name: its state, parent, group and session.
        # shellcheck disable=SC2086  # these are words
        set -- "$1" ${line##*) }
        [ "$5" != "$1" ] || kill -9 "${process#/proc/}"
    done 2>/dev/null
    echo ok
    ;;
read) # FOLDER NAME…
    walk "$@"
    file
    echo ok "$(stat -c %s "$at")"
    exec timeout -s KILL 3600 cat "$at"
    ;;
list) # FOLDER NAME…
    walk "$@"
    [ -d "$at" ] || answer path "is not a folder"
    cd "$at" || exit
    echo ok
    exec timeout -s KILL 60 find . -mindepth 1 -maxdepth 1 -exec stat -c '%f %s %n/' {} +
    ;;
write) # FOLDER NAME…
    at=$1
    shift
    look
    while [ $# -gt 1 ]; do
        at=$at/$1
        look
        [ -d "$at" ] || [ ! -e "$at" ] || answer path "is below what is no folder"
        [ -d "$at" ] || mkdir "$at" || exit
        shift
    done
    cd "$at" || exit
    at=./$1
    look
    [ ! -e "$at" ] || file
    rm -f "$draft"
    set -C
    echo ok
    cat >"$draft" && echo ok
    ;;
keep) # PATH SIZE: or, without a size, what was written goes
    cd "${1%/*}" || exit
    [ -n "$2" ] || { rm -f "$draft" && answer ok; }
    file=./${1##*/}
    [ "$(stat -c %s "$draft")" = "$2" ] || exit
    [ ! -f "$file" ] || chmod "$(stat -c %a "$file")" "$draft"
    mv -fT "$draft" "$file" && echo ok
    ;;
esac
