import type { ComponentChildren } from 'preact';

/** Figures with their names; those that are undefined are left out. */
export function Facts(props: {
  readonly of: readonly (readonly [title: string, value: ComponentChildren | undefined])[];
}) {
  return (
    <dl class="facts">
      {props.of.map(
        ([title, value]) =>
          value !== undefined && (
            <div key={title}>
              <dt>{title}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
