// Receives and verifies webhooks with only Go's standard library.
//
//	PILLOLE_WEBHOOK_SECRET=whsec_… PORT=8000 go run verify-webhook.go
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
)

// region: verify
import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

// verify fails unless the delivery was signed with one of the secrets within the last 5 minutes.
// The body is the raw body, byte for byte.
func verify(body []byte, headers http.Header, secrets []string) error {
	id, timestamp := headers.Get("webhook-id"), headers.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if id == "" || err != nil {
		return errors.New("not a signed webhook")
	}
	age := time.Now().Unix() - seconds
	if age > 300 || age < -300 {
		return errors.New("too old or too new")
	}
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			return errors.New("the secret is not whsec_ and base64")
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		for _, signature := range strings.Split(headers.Get("webhook-signature"), " ") {
			if hmac.Equal([]byte(signature), []byte(expected)) {
				return nil
			}
		}
	}
	return errors.New("no signature matches")
}

// end

const bodyBytesMax = 1_048_576

func main() {
	secrets := strings.Fields(os.Getenv("PILLOLE_WEBHOOK_SECRET"))
	if len(secrets) == 0 {
		log.Fatal("Set PILLOLE_WEBHOOK_SECRET to the endpoint's secret.")
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "8000"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	server := http.Server{ReadTimeout: 15 * time.Second}
	server.Handler = http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		// The raw body, before any parser.
		body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, bodyBytesMax))
		if err != nil {
			http.Error(response, "the body is too large or incomplete", http.StatusRequestEntityTooLarge)
			return
		}
		if err := verify(body, request.Header, secrets); err != nil {
			http.Error(response, err.Error(), http.StatusUnauthorized)
			return
		}
		var event struct {
			Type string
			Data struct{ Challenge string }
		}
		if err := json.Unmarshal(body, &event); err != nil {
			http.Error(response, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Println(request.Header.Get("webhook-id"), event.Type)
		// A test needs the challenge, anything else any 2xx. Answer within 15 s, then work.
		if event.Type == "endpoint.test" {
			io.WriteString(response, event.Data.Challenge)
		}
	})
	log.Fatal(server.Serve(listener))
}
