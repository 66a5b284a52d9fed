import { copyApp } from './app.ts';

/** `node dist/deploy/image/app-main.js FOLDER`: the Dockerfile makes /app with it, on Node 22. */
const [folder] = process.argv.slice(2);
if (folder === undefined) {
  process.stderr.write('Usage: app-main.js FOLDER\n');
  process.exit(2);
}
const { platform, arch, versions } = process;
copyApp(folder, { platform, arch, modules: versions.modules });
