#!/bin/sh
# Makes the secrets of compose.yaml once: .env and the folder secrets, which git ignores. What exists
# stays as it is. Needs openssl.
set -eu
cd "$(dirname "$0")"
umask 077
[ ! -e .env ] || { echo '.env exists: nothing is changed.'; exit 0; }
mkdir -p secrets
random() { openssl rand -hex 24; }
# Each file is mounted by itself and read by user 65534 of the image; the folder is closed to others.
printf '%s\n' "$(openssl rand -hex 32)" >secrets/pepper
token=gen_$(random)
printf '%s\n' "$token" >secrets/generator-token
printf '[{"name":"desk-1","sha256":"%s"}]\n' \
  "$(printf %s "$token" | openssl dgst -sha256 -r | cut -d' ' -f1)" >secrets/generators.json
random >secrets/postgres
random >secrets/grafana
: >secrets/passwords.sql
{
  echo "KAFKA_CLUSTER_ID=$(openssl rand -base64 16 | tr '+/' 'AB' | tr -d '=')"
  echo "CLICKHOUSE_PASSWORD=$(random)"
  for role in migrate api stream dedicated webhooks destinations admin; do
    password=$(random)
    echo "PILLOLE_$(echo "$role" | tr a-z A-Z)_PASSWORD=$password"
    echo "ALTER ROLE pillole_$role PASSWORD '$password';" >>secrets/passwords.sql
  done
  password=$(random)
  echo "REGISTRY_PASSWORD=$password"
  echo "CREATE ROLE registry LOGIN PASSWORD '$password'; CREATE DATABASE registry OWNER registry;" \
    >>secrets/passwords.sql
} >.env
chmod 644 secrets/pepper secrets/generators.json secrets/passwords.sql secrets/postgres secrets/grafana
