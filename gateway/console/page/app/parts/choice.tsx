import { useLocation } from 'preact-iso';

/** A choice that is kept in the address, so that a link shows the same view. */
export function useChoice<const T extends string>(
  name: string,
  options: readonly [T, ...T[]],
): readonly [present: T, choose: (one: T) => void] {
  const { path, query, route } = useLocation();
  const present = options.find((one) => one === query[name]) ?? options[0];
  const choose = (one: T) =>
    route(`${path}?${new URLSearchParams({ ...query, [name]: one })}`, true);
  return [present, choose];
}

export function Choice<const T extends string>(props: {
  readonly label: string;
  readonly options: readonly T[];
  readonly value: T;
  readonly onChoose: (one: T) => void;
  readonly titles?: Readonly<Partial<Record<T, string>>>;
}) {
  const { label, options, value, onChoose, titles } = props;
  return (
    <label class="choice">
      {label}{' '}
      <select value={value} onChange={(event) => onChoose(event.currentTarget.value as T)}>
        {options.map((one) => (
          <option key={one} value={one}>
            {titles?.[one] ?? one}
          </option>
        ))}
      </select>
    </label>
  );
}
