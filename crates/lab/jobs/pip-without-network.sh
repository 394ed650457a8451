# needs: python3
# Asks the index, which is not there: told within seconds.
python3 -m pip --version > /dev/null 2>&1 || { echo "python3 has no pip"; exit 77; }
begin=$(date +%s)
if python3 -m pip install --break-system-packages left-pad; then echo "there is a network"; exit 1; fi
took=$(($(date +%s) - begin))
[ "$took" -le 20 ] || { echo "it took $took seconds to say so"; exit 1; }
