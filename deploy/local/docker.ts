/** Whether a Docker engine answers, asked quickly and quietly. */
import { existsSync } from 'node:fs';
import { request } from 'node:http';
import { homedir } from 'node:os';
import { join } from 'node:path';

const PROBE_TIMEOUT_MS = 800;

/** True when the engine behind DOCKER_HOST, or a socket at its usual place, answers a ping. */
export async function dockerAnswers(): Promise<boolean> {
  const host = process.env.DOCKER_HOST;
  if (host === undefined || host === '') {
    const sockets = ['/var/run/docker.sock', join(homedir(), '.docker', 'run', 'docker.sock')];
    const socket = sockets.find((path) => existsSync(path));
    return socket !== undefined && ping({ socketPath: socket });
  }
  if (host.startsWith('unix://')) return ping({ socketPath: host.slice('unix://'.length) });
  if (!URL.canParse(host)) return false;
  const { hostname, port } = new URL(host);
  return ping({ host: hostname, port: Number(port) || 2375 });
}

function ping(where: { socketPath: string } | { host: string; port: number }): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = request({ ...where, path: '/_ping', timeout: PROBE_TIMEOUT_MS }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    probe.once('timeout', () => probe.destroy());
    probe.once('error', () => resolve(false));
    probe.once('close', () => resolve(false));
    probe.end();
  });
}
