# needs: go
# A module with a test that serves on a port.
printf 'module job\n\ngo 1.19\n' > go.mod
cat > one_test.go <<'G'
package job
import ("net/http"; "net/http/httptest"; "testing")
func TestServe(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	answer, err := http.Get(server.URL)
	if err != nil || answer.StatusCode != 404 { t.Fatal(err, answer) }
}
G
go vet ./... && go test ./...
