/** Version of this package; sdk/packages.json sets it. */
export const VERSION = '0.1.0';
