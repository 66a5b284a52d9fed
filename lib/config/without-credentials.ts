/** An address without user and password, for logs and screens; other text stays as it is. */
export function withoutCredentials(address: string): string {
  return address.replace(/(^|\/\/)[^/@]*@/, '$1');
}
