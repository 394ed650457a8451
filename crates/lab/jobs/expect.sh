# needs: expect
# A dialogue with a program that asks.
expect -c 'spawn sh -c {printf "name: "; read name; echo "hello $name"}; expect "name: "; send "job\r"; expect { "hello job" { exit 0 } timeout { exit 1 } }'
