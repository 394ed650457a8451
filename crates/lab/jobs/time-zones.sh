# needs: date
# Times of other places.
[ -e /usr/share/zoneinfo/Europe/Berlin ] || { echo "there are no time zones"; exit 77; }
[ "$(TZ=Europe/Berlin date -d @0 +%H)" = 01 ]
