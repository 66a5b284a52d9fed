import { existsSync } from 'node:fs';
import { request } from 'node:http';
import os from 'node:os';
import path from 'node:path';

const PROBE_TIMEOUT_MS = 800;

/**
 * True when a Docker engine answers a ping within 0.8 s: the engine at `host` (DOCKER_HOST), else at
 * a socket on one of the usual paths.
 */
export async function dockerAnswers(host: string | undefined): Promise<boolean> {
  if (host === undefined) {
    const sockets = [
      '/var/run/docker.sock',
      path.join(os.homedir(), '.docker', 'run', 'docker.sock'),
    ];
    const socket = sockets.find((file) => existsSync(file));
    return socket !== undefined && ping({ socketPath: socket });
  }
  if (host.startsWith('unix://')) return ping({ socketPath: host.slice('unix://'.length) });
  if (!URL.canParse(host)) return false;
  const { hostname, port } = new URL(host);
  return ping({ host: hostname, port: Number(port) || 2375 });
}

function ping(
  target: { readonly socketPath: string } | { readonly host: string; readonly port: number },
): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = request({ ...target, path: '/_ping', timeout: PROBE_TIMEOUT_MS }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    probe.once('timeout', () => probe.destroy());
    probe.once('error', () => resolve(false));
    probe.once('close', () => resolve(false));
    probe.end();
  });
}
