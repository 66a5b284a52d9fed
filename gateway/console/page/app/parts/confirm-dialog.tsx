import type { ComponentChildren } from 'preact';
import { Dialog } from './dialog.tsx';
import { Form } from './form.tsx';

/** States what a change brings, before it happens. Fields among the children are sent with it. */
export function ConfirmDialog(props: {
  readonly title: string;
  readonly action: string;
  readonly onConfirm: (values: Readonly<Record<string, string>>, data: FormData) => Promise<void>;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}) {
  const { title, action, onConfirm, onClose, children } = props;
  return (
    <Dialog title={title} onClose={onClose}>
      <Form action={action} onSubmit={onConfirm}>
        {children}
      </Form>
    </Dialog>
  );
}
