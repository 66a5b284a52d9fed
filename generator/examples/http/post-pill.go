// go run post-pill.go SYMBOL SPREAD [STACK_JSON] posts one pill. A failure that may pass is repeated
// with the same id, so the pill counts once. The token, if one is needed, is INGEST_CREDENTIAL.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"math"
	mathrand "math/rand"
	"net/http"
	"os"
	"strconv"
	"time"
)

func require(ok bool, format string, values ...any) {
	if !ok {
		fmt.Fprintf(os.Stderr, format+"\n", values...)
		os.Exit(1)
	}
}

func main() {
	require(len(os.Args) == 3 || len(os.Args) == 4, "Usage: go run post-pill.go SYMBOL SPREAD [STACK_JSON]")
	spread, err := strconv.ParseFloat(os.Args[2], 64)
	require(err == nil, "SPREAD is no number: %s", os.Args[2])
	file := append(os.Args, ".local/stack.json")[3]
	text, err := os.ReadFile(file)
	require(err == nil, "No running stack: %s does not exist. Run \"npm start\", or name its stack.json.", file)
	var stack struct{ Ingest string }
	require(json.Unmarshal(text, &stack) == nil, "%s is not JSON.", file)
	id, now := make([]byte, 16), time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	rand.Read(id)
	body, _ := json.Marshal(map[string]any{"id": fmt.Sprintf("%x", id), "timestamp": now, "symbol": os.Args[1],
		"gross_spread_percent": spread, "market_state": "open", "confidence": 90})
	client := http.Client{Timeout: 10 * time.Second}
	for attempt := 0; attempt < 8; attempt++ {
		wait := mathrand.Float64() * math.Min(5, 0.1*math.Pow(2, float64(attempt)))
		request, _ := http.NewRequest("POST", stack.Ingest+"/api/pillole", bytes.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		if token := os.Getenv("INGEST_CREDENTIAL"); token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		if answer, err := client.Do(request); err == nil { // else the pill may have been stored
			text, _ := io.ReadAll(answer.Body)
			if answer.StatusCode < 300 {
				fmt.Println(string(text))
				return
			}
			require(answer.StatusCode == 429 || answer.StatusCode >= 500, "The pill was refused: %s", text)
			after, _ := strconv.ParseFloat(answer.Header.Get("Retry-After"), 64)
			wait += after
		}
		time.Sleep(time.Duration(wait * float64(time.Second)))
	}
	require(false, "No answer after 8 attempts. Try again later with the same id: %x", id)
}
