import { PageOf } from '../parts/page.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { type Owner, ProfileSection } from './profile-section.tsx';

/** Settings, then Profile. */
export default function Profile() {
  const account = useLoad<Owner>('/api/account');
  return (
    <PageOf title="Profile">
      <WhenLoaded of={account} rows={3}>
        {(owner) => <ProfileSection owner={owner} onRenamed={account.reload} />}
      </WhenLoaded>
    </PageOf>
  );
}
