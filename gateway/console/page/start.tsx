import { render } from 'preact';
import './style.css';
import { openFeed } from './feed/feed.ts';
import { Page } from './view/page.tsx';
import { applyTheme } from './view/theme.tsx';

applyTheme();
const source = { onChange: () => {} };
const feed = openFeed(() => source.onChange());
render(<Page feed={feed} source={source} />, document.getElementById('page')!);
