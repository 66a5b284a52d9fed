import { PageOf } from '../parts/page.tsx';
import { PasswordSection } from './password-section.tsx';
import { SecondFactorSection } from './second-factor-section.tsx';
import { SignInsSection } from './sign-ins-section.tsx';

/** Settings, then Security. */
export default function Security() {
  return (
    <PageOf title="Security">
      <PasswordSection />
      <SecondFactorSection />
      <SignInsSection />
    </PageOf>
  );
}
