# needs: openssl
# A certificate, a server and a client of TLS on the loopback.
openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -days 1 -subj /CN=localhost 2> /dev/null
openssl s_server -quiet -key key -cert cert -accept 127.0.0.1:4433 -www & server=$!
for _ in $(seq 50); do
  printf 'GET / HTTP/1.0\r\n\r\n' | openssl s_client -quiet -connect 127.0.0.1:4433 -CAfile cert -verify_return_error > answer 2> /dev/null && grep -q '200 ok' answer && break
  sleep 0.1
done
kill "$server"
grep -q '200 ok' answer
