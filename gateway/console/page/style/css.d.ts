/** A style sheet: vite takes it into the page. */
declare module '*.css';
