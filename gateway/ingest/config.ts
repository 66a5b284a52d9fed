import { readCredentialFile } from '../../domain/access/generator-credentials.ts';
import { type CommonConfig, readBind, readCommonConfig } from '../../lib/config/common.ts';
import { readConfig } from '../../lib/config/config.ts';
import { readExposure } from '../../lib/config/exposure.ts';
import { readTrustedProxies } from '../http/client-address.ts';

export interface IngestConfig extends CommonConfig {
  readonly host: string;
  readonly port: number;
  /** File of generator credentials; undefined leaves the server open. */
  readonly credentialsFile: string | undefined;
  /**
   * Names that requests to an open server may use besides those of this machine; undefined if the
   * server listens for other machines, whose names for it are unknown.
   */
  readonly hostnames: readonly string[] | undefined;
  readonly trustedProxies: readonly string[];
}

/**
 * Reads the settings of the ingest process.
 * @throws ConfigError for a fault, and when other machines could reach a server without credentials
 */
export function readIngestConfig(env: NodeJS.ProcessEnv = process.env): IngestConfig {
  return readConfig(env, (reader) => {
    const common = readCommonConfig(reader);
    const bind = readBind(reader, 'INGEST');
    const { urls, publicBy } = readExposure(reader, bind);
    const credentialsFile = reader.get('INGEST_CREDENTIALS_FILE');
    const isOpened = reader.get('INGEST_OPEN') === 'yes';
    const open = [...common.open, ...bind.open];
    if (credentialsFile !== undefined) {
      const read = readCredentialFile(credentialsFile);
      if (!read.ok) reader.fault(`INGEST_CREDENTIALS_FILE: ${read.reason.replace(/\.$/, '')}`);
    } else if (isOpened || publicBy === undefined) {
      const reason = isOpened ? 'INGEST_OPEN=yes' : 'every address is of this machine';
      open.push(`pills without a credential (no INGEST_CREDENTIALS_FILE, and ${reason})`);
    } else {
      reader.fault(
        `${publicBy}: name a file of generator credentials in INGEST_CREDENTIALS_FILE, or set ` +
          'INGEST_OPEN=yes',
      );
    }
    return {
      ...common,
      open,
      host: bind.host,
      port: reader.get('INGEST_PORT'),
      credentialsFile,
      trustedProxies: readTrustedProxies(reader),
      hostnames: bind.publicBy === undefined ? hostnamesOf(urls.ingest) : undefined,
    };
  });
}

function hostnamesOf(url: string): string[] {
  return URL.canParse(url) ? [new URL(url).hostname] : [];
}
