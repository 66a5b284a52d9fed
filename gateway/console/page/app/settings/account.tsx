import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { ActionButton } from '../parts/action-button.tsx';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { Field } from '../parts/form.tsx';
import { PageOf } from '../parts/page.tsx';
import { saveFile } from '../parts/save-file.ts';
import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { useSession } from '../session/session-context.tsx';

interface Entry {
  readonly at: string;
  readonly actor: string;
  readonly action: string;
  readonly target: string | null;
  readonly address: string | null;
}

/** Settings, then Account: what was changed, its export and its end. */
export default function OwnAccount() {
  return (
    <PageOf title="Account">
      <Changes />
      <ExportSection />
      <CloseAccount />
    </PageOf>
  );
}

function Changes() {
  const audit = useLoad<{ readonly data: readonly Entry[] }>('/api/account/audit?limit=20');
  return (
    <section class="part">
      <h2>Latest changes</h2>
      <WhenLoaded of={audit} rows={6}>
        {({ data }) => (
          <table class="stacked">
            <thead>
              <tr>
                <th>Time</th>
                <th>Change</th>
                <th>Of</th>
                <th>By</th>
                <th>From</th>
              </tr>
            </thead>
            <tbody>
              {data.map((entry) => (
                <tr key={`${entry.at} ${entry.action} ${entry.target}`}>
                  <td data-title="Time">
                    <Time of={entry.at} />
                  </td>
                  <td data-title="Change">{entry.action}</td>
                  <td data-title="Of">
                    <code>{entry.target}</code>
                  </td>
                  <td data-title="By">
                    <code>{entry.actor}</code>
                  </td>
                  <td data-title="From">{entry.address}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </WhenLoaded>
    </section>
  );
}

function ExportSection() {
  const { client } = useSession();
  return (
    <section class="part">
      <h2>Export</h2>
      <p>
        Everything that is stored about the account, as NDJSON: users, keys without their text,
        payments, endpoints, tickets, use by day and all changes.
      </p>
      <ActionButton
        onClick={async () =>
          saveFile(await client.download('/api/account/export'), 'account.ndjson')
        }
      >
        Download export
      </ActionButton>
    </section>
  );
}

function CloseAccount() {
  const { client } = useSession();
  const { route } = useLocation();
  const [isOpen, setOpen] = useState(false);
  const close = async ({ password }: Readonly<Record<string, string>>) => {
    await client.send('DELETE', '/api/account', { password });
    client.useSession(undefined);
    route('/app/sign-in?changed=closed');
  };
  return (
    <section class="part">
      <h2>Close account</h2>
      <button type="button" class="danger" onClick={() => setOpen(true)}>
        Close account
      </button>
      {isOpen && (
        <ConfirmDialog
          title="Close account"
          action="Close for good"
          onConfirm={close}
          onClose={() => setOpen(false)}
        >
          <p>
            Download an export first, if you need one. Keys, sockets and the subscription end at
            once. The data is erased after 30 days; until then, support can restore the account.
          </p>
          <Field name="password" label="Password" type="password" autocomplete="current-password" />
        </ConfirmDialog>
      )}
    </section>
  );
}
