import { useLocation } from 'preact-iso';

/** Whether the dialog that creates something is open: `new=1` in the address, as the palette links. */
export function useNew(): readonly [isOpen: boolean, setOpen: (isOpen: boolean) => void] {
  const { path, query, route } = useLocation();
  const setOpen = (isOpen: boolean) => {
    const { new: _, ...rest } = query;
    const text = new URLSearchParams(isOpen ? { ...rest, new: '1' } : rest).toString();
    route(text === '' ? path : `${path}?${text}`, true);
  };
  return [query.new === '1', setOpen];
}
