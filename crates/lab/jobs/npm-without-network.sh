# needs: npm
# Asks the registry, which is not there: told within seconds.
echo '{"name":"app","version":"1.0.0"}' > package.json
begin=$(date +%s)
if npm install left-pad; then echo "there is a network"; exit 1; fi
took=$(($(date +%s) - begin))
[ "$took" -le 20 ] || { echo "it took $took seconds to say so"; exit 1; }
